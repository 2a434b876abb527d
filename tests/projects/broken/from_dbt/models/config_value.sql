select '{{ config.sink }}' as sink
