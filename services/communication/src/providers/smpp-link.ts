import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import smpp, { type Pdu, type Session } from 'smpp';

export interface SmppLinkSettings {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** Certificates to trust in place of those of the system, as PEM. */
  readonly ca?: string;
  readonly systemId: string;
  readonly password: string;
  /** Of each answer. */
  readonly timeoutMs: number;
}

/** What became of a request. `unsent`: the centre surely never saw it; `lost`: nobody knows. */
export type SmppAnswer = Pdu | 'unsent' | 'lost';

/** A session with a message centre, that is opened when it is needed. */
export interface SmppLink {
  /** @returns the answer to the request or, where there is no session, to the attempt to open one. */
  submit(fields: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<SmppAnswer>;
  /**
   * Keeps a session open from now on, for what the centre sends by itself.
   *
   * @param take throws where the centre is to send it again.
   */
  receive(take: (pdu: Pdu) => Promise<void>): void;
  close(): Promise<void>;
}

const REOPEN = { baseMs: 500, maxMs: 30_000 };
/** Centres close sessions that say nothing, after a minute or more. */
const ENQUIRE_MS = 20_000;
const GOODBYE_MS = 1000;
/** ESME_RX_T_APPN: the centre is to send it again. */
const TEMPORARY_ERROR = 0x64;

export function createSmppLink(settings: SmppLinkSettings): SmppLink {
  const stopping = new AbortController();
  let opening: Promise<Session | SmppAnswer> | undefined;
  let take: ((pdu: Pdu) => Promise<void>) | undefined;
  let keeping: Promise<void> | undefined;

  /** Who asks while a session is opened, or is open, gets that one. */
  function session(): Promise<Session | SmppAnswer> {
    opening ??= openOnce();
    return opening;
  }

  const forget = () => {
    opening = undefined;
  };

  async function openOnce(): Promise<Session | SmppAnswer> {
    const opened = await open(settings, (pdu) =>
      take === undefined ? Promise.reject(new Error('nobody takes it')) : take(pdu),
    );
    if (isSession(opened)) opened.once('close', forget);
    else forget();
    return opened;
  }

  async function keepOpen(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; ) {
      const opened = await session();
      failures = isSession(opened) ? 0 : failures + 1;
      if (isSession(opened)) await untilClosed(opened, stopping.signal);
      await sleep(backoffMs(failures, REOPEN), stopping.signal);
    }
  }

  return {
    async submit(fields, signal) {
      if (signal.aborted || stopping.signal.aborted) return 'unsent';
      const opened = await session();
      // That it could not be opened surely sent nothing.
      if (!isSession(opened)) return opened === 'lost' ? 'unsent' : opened;
      const request = { timeoutMs: settings.timeoutMs, signal };
      return ask(opened, request, (answered) => opened.submit_sm(fields, answered));
    },
    receive(taken) {
      take = taken;
      keeping ??= keepOpen();
    },
    async close() {
      stopping.abort();
      const opened = await opening;
      if (opened !== undefined && isSession(opened)) {
        await ask(opened, { timeoutMs: GOODBYE_MS }, (answered) => opened.unbind({}, answered));
        opened.destroy();
      }
      await keeping;
    },
  };
}

function isSession(opened: Session | SmppAnswer): opened is Session {
  return typeof opened === 'object' && 'submit_sm' in opened;
}

/** @returns a session that is bound, or why there is none. */
async function open(
  { host, port, tls, ca, systemId, password, timeoutMs }: SmppLinkSettings,
  take: (pdu: Pdu) => Promise<void>,
): Promise<Session | SmppAnswer> {
  const session = smpp.connect({ host, port, tls, ...(ca !== undefined && { ca }) });
  // Each request that waits for its answer listens for the end of the session.
  session.setMaxListeners(0);
  // Also of bytes that are no SMPP: the library reads no further then.
  session.on('error', () => session.destroy());
  session.on('enquire_link', (pdu: Pdu) => void session.send(pdu.response()));
  session.on('unknown', (pdu: Pdu) => void session.send(pdu.response()));
  session.on('unbind', (pdu: Pdu) => {
    session.send(pdu.response());
    session.close();
  });
  session.on('deliver_sm', (pdu: Pdu) => {
    take(pdu).then(
      () => session.send(pdu.response()),
      () => session.send(pdu.response({ command_status: TEMPORARY_ERROR })),
    );
  });
  const answer = await ask(session, { timeoutMs }, (answered) => {
    const credentials = { system_id: systemId, password };
    session.once(tls ? 'secureConnect' : 'connect', () => session.bind_transceiver(credentials, answered));
    return true;
  });
  if (typeof answer === 'object' && answer.command_status === 0) {
    enquireRegularly(session, timeoutMs);
    return session;
  }
  session.destroy();
  return answer;
}

/** A centre that is gone without a word is noticed. */
function enquireRegularly(session: Session, timeoutMs: number): void {
  const enquire = async () => {
    const answer = await ask(session, { timeoutMs }, (answered) => session.enquire_link({}, answered));
    if (typeof answer !== 'object') session.destroy();
  };
  const timer = setInterval(() => void enquire(), ENQUIRE_MS);
  timer.unref();
  session.once('close', () => clearInterval(timer));
}

interface Waiting {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** @param send says whether it could be written. */
function ask(
  session: Session,
  { timeoutMs, signal }: Waiting,
  send: (answered: (pdu: Pdu) => void) => boolean,
): Promise<SmppAnswer> {
  const { promise, resolve } = Promise.withResolvers<SmppAnswer>();
  const lose = () => resolve('lost');
  const timer = setTimeout(lose, timeoutMs);
  session.once('close', lose);
  signal?.addEventListener('abort', lose);
  if (!send(resolve)) resolve('unsent');
  return promise.finally(() => {
    clearTimeout(timer);
    session.off('close', lose);
    signal?.removeEventListener('abort', lose);
  });
}

function untilClosed(session: Session, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  session.once('close', end);
  signal.addEventListener('abort', end, { once: true });
  return promise;
}
