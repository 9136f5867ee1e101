"""Programs into memory: ELF files with their symbols and lines, tt-metal firmware, and how cores are started."""
