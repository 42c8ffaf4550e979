"""Routes and bodies of generations, activity, stored responses and the audit log."""
