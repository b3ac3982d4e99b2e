// `node idle-connections.ts PORT COUNT`, forked: connections of HTTP/2 that have no call; reports
// when they are there.
import { connect } from 'node:net';

const [port, count] = process.argv.slice(2).map(Number);
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const SETTINGS_ACK = Buffer.from([0, 0, 0, 4, 1, 0, 0, 0, 0]);
const AT_ONCE = 100;

function open(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port ?? 0, '127.0.0.1', () => {
      socket.write(Buffer.concat([PREFACE, SETTINGS, SETTINGS_ACK]));
      resolve();
    });
    socket.on('error', () => resolve());
    socket.resume();
  });
}

for (let opened = 0; opened < (count ?? 0); opened += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, open));
process.send?.('open');
