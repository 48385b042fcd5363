from broker.stock import Stock
from broker.store.batch import Inventory

def restock(stock: Stock, inventory: Inventory, now: float) -> None: ...
