"""The contest: every rival on every stream, with what each of them knew and every loss shown (`orcast contest`)."""
