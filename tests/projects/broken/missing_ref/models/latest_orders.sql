select * from {{ this }}
