from broker.queueing.message_store import MessageStore
from broker.store.batch import Inventory

def restock(stock: MessageStore, inventory: Inventory, now: float) -> None: ...
