import { connect, type Socket } from 'node:net';
import { createAnswerReader } from './answer-reader.ts';

/** One connection of HTTP/1.1, one request at a time, opened again when it breaks. */
export interface HttpConnection {
  /**
   * @returns the status of the answer once all of it has come; `none` when the connection broke
   * instead.
   */
  exchange(request: Buffer): Promise<number | 'none'>;
  close(): void;
}

const READ_BUFFER_BYTES = 256 * 1024;

/**
 * A client that does little more than count bytes, so that it is the server that is measured: an
 * ordinary client costs as much per request as the server does.
 */
export function openHttpConnection(port: number): HttpConnection {
  let socket: Socket | undefined;
  let settle: ((status: number | 'none') => void) | undefined;

  function finish(outcome: number | 'none'): void {
    const done = settle;
    settle = undefined;
    done?.(outcome);
  }

  function open(): Socket {
    const reader = createAnswerReader();
    const opened = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(READ_BUFFER_BYTES),
        callback(bytes, { buffer, byteOffset }) {
          try {
            const status = reader.read(Buffer.from(buffer, byteOffset, bytes));
            if (status !== undefined) finish(status);
          } catch {
            opened.destroy();
          }
          return true;
        },
      },
    });
    // What goes wrong shows in the count of requests without an answer.
    opened.on('error', () => undefined);
    opened.on('close', () => {
      if (socket === opened) socket = undefined;
      finish('none');
    });
    return opened;
  }

  return {
    exchange(request) {
      return new Promise((resolve) => {
        settle = resolve;
        socket ??= open();
        socket.write(request);
      });
    },
    close: () => void socket?.destroy(),
  };
}
