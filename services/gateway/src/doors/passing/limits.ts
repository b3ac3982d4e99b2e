/** What a WebSocket to a service may cost. */
export const limits = {
  /** Open ones of this process. Each has a connection to its service, too. */
  connections: 10_000,
  connectionsPerSubject: 1000,
  /** Of a message of a client; a larger one ends the connection with 1009. */
  clientMessageBytes: 1024 * 1024,
  /** Of a message of a service. */
  serviceMessageBytes: 16 * 1024 * 1024,
  /** Of a client; more end the connection with 1008. */
  messageRate: { perSecond: 50, burst: 200 },
  /** So much may wait for one side before the other is not read any more. */
  windowBytes: 256 * 1024,
  /** Between two pings of the client; see `createLiveness`. */
  heartbeatMs: 20_000,
  /** Between two checks whether tokens still hold. */
  tokenCheckMs: 500,
  /** For the first message of a client that shows its token there. */
  initMs: 10_000,
  /** How long peers have to answer the closing handshake. */
  closeTimeoutMs: 5000,
} as const;
