"""Self-contained HTML pages: a style sheet, a chart library, and a content security policy for their own scripts."""
