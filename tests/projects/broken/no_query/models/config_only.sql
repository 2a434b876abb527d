{{ config(tags='later') }}
