"""Which candidates a kernel looks at: by time, by value, and lists made ahead."""
