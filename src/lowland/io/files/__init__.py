"""Files and streams: opened, unpacked, recognized by their bytes, held against memory."""
