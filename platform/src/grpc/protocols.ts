import { fileURLToPath } from 'node:url';

/** Where the protocol buffers are that several processes speak. */
export const protocolDirectory = fileURLToPath(new URL('../../proto', import.meta.url));
