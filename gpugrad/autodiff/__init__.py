"""The tape: records executed ops and differentiates the record. Start with `backward`."""
