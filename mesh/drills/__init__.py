"""Drills: rehearsed failures. A drill file names faults and expectations; a run breaks a mesh under traffic and judges
the effects on clients.
"""
