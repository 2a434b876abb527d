{{ config(sink='lake', options={'password': env_var('SQLSTREAM_SECRET_PASSWORD')}) }}
select * from {{ ref('orders') }}
