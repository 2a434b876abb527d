{{ config(sink='lake') }}
{{ latest() }}
