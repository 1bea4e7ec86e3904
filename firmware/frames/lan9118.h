/* A polled driver for the SMSC LAN9118 Ethernet controller. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FRAMES_LAN9118_H
#define FRAMES_LAN9118_H

#include <stdint.h>

/** Longest frame, without the checksum that the controller appends. */
#define LAN9118_FRAME 1514u

/** Starts the controller: full duplex, all frames. Returns 0, or -1 if it is not there. */
int lan9118_start(const uint8_t mac[6]);

/** Takes one received frame, of at most LAN9118_FRAME bytes. Returns its length, or 0 if there is none. */
uint32_t lan9118_receive(uint32_t frame[(LAN9118_FRAME + 6) / 4]);

/** Sends one frame; waits until the controller has room. Short frames are padded to 60 bytes: `frame` has room. */
void lan9118_send(const uint32_t *frame, uint32_t bytes);

/** Frames that the controller dropped since the last call, because the program was too slow. */
uint32_t lan9118_dropped(void);

#endif
