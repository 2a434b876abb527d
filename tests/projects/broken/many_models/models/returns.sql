{{ exceptions.raise_compiler_error('returns are not ready yet') }}
