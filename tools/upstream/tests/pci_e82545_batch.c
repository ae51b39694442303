static unsigned int nflushed;

void
netbe_flush(net_backend_t *be __unused)
{
	nflushed++;
}

TEST(tx_batch, "The backend is flushed once for packets that one write of the "
    "tail sends")
{
	create();
	for (int i = 0; i < 16; i++)
		put_legacy(i, DATA, FRAME_LEN, E1000_TXD_CMD_EOP);
	transmit(16);
	ATF_CHECK_EQ(16, nsent);
	ATF_CHECK_EQ(1, nflushed);
}
