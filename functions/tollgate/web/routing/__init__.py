"""Routes and bodies of catalogs and of explained plans."""
