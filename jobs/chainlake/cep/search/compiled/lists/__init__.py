"""Which candidates a kernel looks at: by time, by value, and in lists made beforehand."""
