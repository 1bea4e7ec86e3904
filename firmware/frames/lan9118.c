/* A polled driver for the SMSC LAN9118. Source: SMSC LAN9118 data sheet, chapters 3.12, 5.3 and 5.4.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lan9118.h"

#define REG(offset) (*(volatile uint32_t *)(0x40200000u + (offset)))
#define RX_DATA REG(0x00)
#define TX_DATA REG(0x20)
#define RX_STATUS REG(0x40)
#define TX_STATUS REG(0x48)
#define BYTE_TEST REG(0x64)
#define RX_CFG REG(0x6c)
#define TX_CFG REG(0x70)
#define HW_CFG REG(0x74)
#define RX_INFO REG(0x7c)
#define TX_INFO REG(0x80)
#define RX_DROP REG(0xa0)
#define MAC_COMMAND REG(0xa4)
#define MAC_DATA REG(0xa8)

enum { MAC_CR = 1, MAC_ADDRESS_HIGH = 2, MAC_ADDRESS_LOW = 3 };

static void mac_write(uint32_t index, uint32_t value) {
    while (MAC_COMMAND & 0x80000000u) {}
    MAC_DATA = value;
    MAC_COMMAND = 0x80000000u | index;
    while (MAC_COMMAND & 0x80000000u) {}
}

int lan9118_start(const uint8_t mac[6]) {
    if (BYTE_TEST != 0x87654321u) return -1;
    HW_CFG = 1; /* soft reset */
    while (HW_CFG & 1) {}
    HW_CFG = 0x00150000; /* store and forward; 5 KiB for sending, the rest for receiving */
    mac_write(MAC_ADDRESS_LOW, mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24);
    mac_write(MAC_ADDRESS_HIGH, mac[4] | mac[5] << 8);
    RX_CFG = 0;
    TX_CFG = 2;
    mac_write(MAC_CR, 1u << 20 | 1u << 18 | 1u << 3 | 1u << 2); /* full duplex, promiscuous, send, receive */
    return 0;
}

uint32_t lan9118_receive(uint32_t frame[(LAN9118_FRAME + 6) / 4]) {
    if ((RX_INFO >> 16 & 0xff) == 0) return 0;
    uint32_t status = RX_STATUS;
    uint32_t bytes = status >> 16 & 0x3fff; /* with the checksum */
    uint32_t words = (bytes + 3) / 4, room = (LAN9118_FRAME + 6) / 4;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t word = RX_DATA;
        if (i < room) frame[i] = word;
    }
    /* Bit 15: error summary. */
    return (status & 0x8000u) != 0 || words > room || bytes < 18 ? 0 : bytes - 4;
}

void lan9118_send(const uint32_t *frame, uint32_t bytes) {
    if (bytes < 60) bytes = 60;
    uint32_t words = (bytes + 3) / 4;
    while ((TX_INFO & 0xffff) < 4 * words + 16) {}
    TX_DATA = 1u << 13 | 1u << 12 | bytes; /* first and last segment */
    TX_DATA = bytes;
    for (uint32_t i = 0; i < words; i++) TX_DATA = frame[i];
    while (TX_INFO >> 16 & 0xff) (void)TX_STATUS;
}

uint32_t lan9118_dropped(void) { return RX_DROP; }
