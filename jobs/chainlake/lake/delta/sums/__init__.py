"""What is known of rows and bytes without reading them again: checksums of rows and pages, statistics of files."""
