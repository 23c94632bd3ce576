"""What is known about rows and bytes without reading them again: checksums of rows and pages, statistics of files."""
