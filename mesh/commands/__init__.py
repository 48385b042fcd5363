"""The sub-commands, a module for each; a module is imported only when the sub-command runs or shows its help."""
