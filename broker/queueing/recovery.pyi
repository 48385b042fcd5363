from broker.queueing.message_store import Stock
from broker.store.batch import Inventory

def restock(stock: Stock, inventory: Inventory, now: float) -> None: ...
