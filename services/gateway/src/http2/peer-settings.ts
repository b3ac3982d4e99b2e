import { ConnectionError, errorCode, FRAME_BYTES, FRAME_BYTES_MAX, setting, WINDOW_BYTES_MAX } from './protocol.ts';

/** @returns identifiers and values of a server's settings. @throws ConnectionError for those that may not be. */
export function readSettings(payload: Buffer): [id: number, value: number][] {
  if (payload.length % 6 !== 0) throw new ConnectionError(errorCode.FRAME_SIZE_ERROR, 'Settings are cut short');
  const settings: [number, number][] = [];
  for (let start = 0; start < payload.length; start += 6) {
    const id = payload.readUInt16BE(start);
    const value = payload.readUInt32BE(start + 2);
    check(id, value);
    settings.push([id, value]);
  }
  return settings;
}

function check(id: number, value: number): void {
  if (id === setting.INITIAL_WINDOW_SIZE && value > WINDOW_BYTES_MAX) {
    throw new ConnectionError(errorCode.FLOW_CONTROL_ERROR, 'A window is too large');
  }
  const isWrongFrameSize = id === setting.MAX_FRAME_SIZE && (value < FRAME_BYTES || value > FRAME_BYTES_MAX);
  // Only a client can be pushed to.
  const isWrongPush = id === setting.ENABLE_PUSH && value !== 0;
  if (isWrongFrameSize || isWrongPush) throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'A setting is wrong');
}
