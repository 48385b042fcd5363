"""The paths of deliveries for an address: circuits, multicast branches and links to brokers at this router."""
