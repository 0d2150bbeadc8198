/* SPDX-License-Identifier: Apache-2.0 */
/* What an L1's operating system cannot find out by itself: soft-off, the legacy devices and the windows of the PCI bus. */
DefinitionBlock ("", "DSDT", 2, "NIDUS ", "NIDUSL1 ", 1)
{
	/* PM1a_CNT.SLP_TYP of soft-off: hv/dev/vpm.c */
	Name (\_S5, Package () { 0, 0, 0, 0 })

	Scope (\_SB)
	{
		Device (PCI0)
		{
			Name (_HID, EisaId ("PNP0A03"))
			Name (_UID, 0)
			Name (_CRS, ResourceTemplate ()
			{
				WordBusNumber (ResourceProducer, MinFixed, MaxFixed, PosDecode, 0, 0, 0xff, 0, 0x100)
				IO (Decode16, 0xcf8, 0xcf8, 1, 8)
				WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange, 0, 0, 0xcf7, 0, 0xcf8)
				WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange, 0, 0xd00, 0xffff, 0, 0xf300)
				DWordMemory (ResourceProducer, PosDecode, MinFixed, MaxFixed, NonCacheable, ReadWrite,
					0, 0xc0000000, 0xfebfffff, 0, 0x3ec00000)
			})
		}

		Device (TIMR)
		{
			Name (_HID, EisaId ("PNP0100"))
			Name (_CRS, ResourceTemplate ()
			{
				IO (Decode16, 0x40, 0x40, 1, 4)
				IRQNoFlags () { 0 }
			})
		}

		Device (RTC0)
		{
			Name (_HID, EisaId ("PNP0B00"))
			Name (_CRS, ResourceTemplate ()
			{
				IO (Decode16, 0x70, 0x70, 1, 2)
				IRQNoFlags () { 8 }
			})
		}

		Device (COM1)
		{
			Name (_HID, EisaId ("PNP0501"))
			Name (_UID, 1)
			Name (_CRS, ResourceTemplate ()
			{
				IO (Decode16, 0x3f8, 0x3f8, 1, 8)
				IRQNoFlags () { 4 }
			})
		}

		/* Ports of the chip set that no driver may claim. */
		Device (MBRD)
		{
			Name (_HID, EisaId ("PNP0C02"))
			Name (_UID, 1)
			Name (_CRS, ResourceTemplate ()
			{
				IO (Decode16, 0x61, 0x61, 1, 1)
				IO (Decode16, 0x92, 0x92, 1, 1)
				IO (Decode16, 0x4d0, 0x4d0, 1, 2)
				IO (Decode16, 0x510, 0x510, 1, 2)
				IO (Decode16, 0x600, 0x600, 1, 12)
			})
		}
	}
}
