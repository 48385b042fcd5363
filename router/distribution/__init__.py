"""The paths of an address's deliveries from this router: circuits, multicast branches and links to brokers."""
