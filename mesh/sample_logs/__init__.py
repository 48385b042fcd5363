"""Link logs of a mesh that never ran, planned from a topology and a traffic profile: `amqpmesh linklogs generate`."""
