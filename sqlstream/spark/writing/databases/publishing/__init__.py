"""Views under the plain names of tables: readers keep one name while another version of a query becomes current."""
