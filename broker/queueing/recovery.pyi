from broker.queueing.message_store import MessageStore
from broker.store.batch import Inventory

def recover_queues(message_store: MessageStore, inventory: Inventory, now: float, least_position: int = 1) -> None: ...
