TEST(moderation, "Interrupts are moderated in microseconds")
{
	static const struct {
		uint32_t itr;		/* units of 256 ns */
		int	 us;
	} rows[] = {
		{ 1, 1 }, { 250, 64 }, { 488, 125 }, { 65535, 16777 },
	};

	create();
	wr(E1000_IMS, E1000_ICR_LSC);
	for (size_t i = 0; i < nitems(rows); i++) {
		sc->esc_mevpitr = NULL;
		wr(E1000_ITR, rows[i].itr);
		wr(E1000_ICS, E1000_ICR_LSC);
		ATF_CHECK_EQ_MSG(rows[i].us, timer_value, "ITR %u: %d",
		    rows[i].itr, timer_value);
		ATF_CHECK_EQ(EVFF_USECONDS, timer_fflags);
		rd(E1000_ICR);
	}
	wr(E1000_ITR, 0x10000);
	ATF_CHECK_EQ(0, rd(E1000_ITR));
}
