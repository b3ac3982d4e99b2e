import type { NotificationPayload, Severity } from './notifications.ts';

/** Slack cuts sections at 3000 characters of escaped text. */
const SECTION_MAX_LENGTH = 2900;
/** Below what compatible servers accept as one message. */
const TEXT_MAX_LENGTH = 12_000;
const CHANNEL = 'slack';
const HOST = 'hooks.slack.com';
const FRAGMENT = '#slack';

const marks: Readonly<Record<Severity, string>> = {
  info: ':information_source:',
  warning: ':warning:',
  error: ':x:',
  critical: ':rotating_light:',
};

/**
 * Whether an endpoint accepts Slack's incoming-webhook messages: a channel of that name, Slack's
 * own host, or a URL that ends in `#slack`, for what is compatible with it (Mattermost, Rocket.Chat
 * and others). The fragment is never sent.
 */
export function isSlackEndpoint(channel: string, url: string): boolean {
  const parsed = URL.parse(url);
  return channel === CHANNEL || parsed?.hostname === HOST || parsed?.hash === FRAGMENT;
}

/**
 * A message of Slack's incoming webhooks: `text` for notifications and for what knows no blocks.
 */
export interface SlackMessage {
  readonly text: string;
  readonly blocks: readonly object[];
}

export function slackMessage(event: string, payload: NotificationPayload): SlackMessage {
  const text = `${marks[payload.severity]} ${escaped(payload.message)}`;
  const section = { type: 'section', text: { type: 'mrkdwn', text: shortened(text, SECTION_MAX_LENGTH) } };
  const details = detailsOf(event, payload).map((detail) => ({ type: 'mrkdwn', text: escaped(detail) }));
  return { text: shortened(text, TEXT_MAX_LENGTH), blocks: [section, { type: 'context', elements: details }] };
}

function detailsOf(event: string, payload: NotificationPayload): string[] {
  const job = payload['job'];
  const service = typeof payload['service_name'] === 'string' ? payload['service_name'] : '';
  if (typeof job !== 'object' || job === null) return [`service ${service}`, payload.severity];
  const fields = new Map<string, unknown>(Object.entries(job));
  const known = (name: string) => {
    const value = fields.get(name);
    return typeof value === 'string' && value !== '' ? [`${name.replaceAll('_', ' ')} ${value}`] : [];
  };
  return [event, ...['job_id', 'strategy', 'old_version', 'reason', 'requested_by'].flatMap(known)];
}

/** As Slack wants control characters of its markup. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Between characters, and not within an escape. */
function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${text.slice(0, length).replace(/[\uD800-\uDBFF]$|&[a-z]{0,3}$/, '')}…`;
}
