uint64_t
netbe_get_cap(net_backend_t *be __unused)
{
	return (0);
}

int
netbe_set_cap(net_backend_t *be __unused, uint64_t features __unused,
    unsigned int vnet_hdr_len __unused)
{
	return (0);
}
