"""What is made from the catalogue and the drivers' tables: documents. Never imported by the daemon."""
