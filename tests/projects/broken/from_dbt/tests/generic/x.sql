{% test x(model) %}{% endtest %}
