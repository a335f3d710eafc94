"""From a task and a schedule to the text of a candidate. Start at `module.code`; a kernel's text is in the file of its form."""
