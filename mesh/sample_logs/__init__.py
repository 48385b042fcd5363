"""Plans link logs of a mesh that never ran, from a topology and a traffic profile, for `amqpmesh linklogs generate`."""
