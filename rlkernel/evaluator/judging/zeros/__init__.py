"""What of a reference's products matters: `mattering` counts it at one size, `full_share` says what it is at full shape."""
