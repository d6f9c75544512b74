"""The tape: records what ops do, and differentiates the record. Start with `backward`."""
