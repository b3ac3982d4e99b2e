/**
 * The shape of `messages:send`, from Google's discovery document fcm.v1.json, revision 20261023,
 * without `androidV2`. Names are those of JSON; the parser also takes them with underscores.
 */

type Scalar = 'string' | 'boolean' | 'int32' | 'float' | 'duration' | 'datetime' | 'struct';
type Field =
  | Scalar
  /** Texts by their keys. */
  | 'map'
  | { readonly listOf: Scalar }
  | { readonly oneOf: readonly string[] }
  | { readonly message: Fields };
type Fields = Readonly<Record<string, Field>>;

const Notification: Fields = { title: 'string', body: 'string', image: 'string' };
const Color: Fields = { red: 'float', green: 'float', blue: 'float', alpha: 'float' };
const LightSettings: Fields = { color: { message: Color }, lightOnDuration: 'duration', lightOffDuration: 'duration' };
const AndroidNotification: Fields = {
  title: 'string',
  body: 'string',
  icon: 'string',
  color: 'string',
  sound: 'string',
  tag: 'string',
  image: 'string',
  ticker: 'string',
  clickAction: 'string',
  channelId: 'string',
  titleLocKey: 'string',
  titleLocArgs: { listOf: 'string' },
  bodyLocKey: 'string',
  bodyLocArgs: { listOf: 'string' },
  sticky: 'boolean',
  localOnly: 'boolean',
  defaultSound: 'boolean',
  defaultVibrateTimings: 'boolean',
  defaultLightSettings: 'boolean',
  bypassProxyNotification: 'boolean',
  eventTime: 'datetime',
  vibrateTimings: { listOf: 'duration' },
  notificationCount: 'int32',
  notificationPriority: {
    oneOf: [
      'PRIORITY_UNSPECIFIED',
      'PRIORITY_MIN',
      'PRIORITY_LOW',
      'PRIORITY_DEFAULT',
      'PRIORITY_HIGH',
      'PRIORITY_MAX',
    ],
  },
  proxy: { oneOf: ['PROXY_UNSPECIFIED', 'ALLOW', 'DENY', 'IF_PRIORITY_LOWERED'] },
  visibility: { oneOf: ['VISIBILITY_UNSPECIFIED', 'PRIVATE', 'PUBLIC', 'SECRET'] },
  lightSettings: { message: LightSettings },
};
const AndroidConfig: Fields = {
  collapseKey: 'string',
  priority: { oneOf: ['NORMAL', 'HIGH'] },
  ttl: 'duration',
  restrictedPackageName: 'string',
  data: 'map',
  notification: { message: AndroidNotification },
  fcmOptions: { message: { analyticsLabel: 'string' } },
  directBootOk: 'boolean',
  bandwidthConstrainedOk: 'boolean',
  restrictedSatelliteOk: 'boolean',
};
const WebpushConfig: Fields = {
  headers: 'map',
  data: 'map',
  notification: 'struct',
  fcmOptions: { message: { link: 'string', analyticsLabel: 'string' } },
};
const ApnsConfig: Fields = {
  headers: 'map',
  payload: 'struct',
  fcmOptions: { message: { analyticsLabel: 'string', image: 'string' } },
  liveActivityToken: 'string',
};
const Message: Fields = {
  name: 'string',
  token: 'string',
  topic: 'string',
  condition: 'string',
  fid: 'string',
  data: 'map',
  notification: { message: Notification },
  android: { message: AndroidConfig },
  webpush: { message: WebpushConfig },
  apns: { message: ApnsConfig },
  fcmOptions: { message: { analyticsLabel: 'string' } },
};
const SendMessageRequest: Fields = { validateOnly: 'boolean', message: { message: Message } };

/** One fault of a request, as `google.rpc.BadRequest` has it. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** Where the JSON is none of `SendMessageRequest`; its names come out without underscores. */
export function checkRequest(value: unknown): {
  readonly violations: readonly FieldViolation[];
  readonly request: Readonly<Record<string, unknown>>;
} {
  const violations: FieldViolation[] = [];
  const request = read(value, { fields: SendMessageRequest, path: '', violations });
  return { violations, request };
}

interface Place {
  readonly fields: Fields;
  readonly path: string;
  readonly violations: FieldViolation[];
}

function read(value: unknown, { fields, path, violations }: Place): Readonly<Record<string, unknown>> {
  if (!isObject(value)) {
    violations.push(invalid(path, value));
    return {};
  }
  const found: Record<string, unknown> = {};
  for (const [given, member] of Object.entries(value)) {
    const name = given.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const at = path === '' ? given : `${path}.${given}`;
    if (field === undefined) {
      violations.push({ field: path, description: unknownName(given, path) });
    } else if (typeof field === 'object' && 'message' in field) {
      found[name] = read(member, { fields: field.message, path: at, violations });
    } else {
      for (const fault of valueFaults(field, member, at)) violations.push(fault);
      found[name] = member;
    }
  }
  return found;
}

function valueFaults(
  field: Exclude<Field, { message: Fields }>,
  value: unknown,
  at: string,
): readonly FieldViolation[] {
  if (field === 'map') {
    if (!isObject(value)) return [invalid(at, value)];
    return Object.values(value).flatMap((member, index) =>
      typeof member === 'string' ? [] : [invalid(`${at}[${index}].value`, member)],
    );
  }
  if (typeof field === 'string') return IS[field](value) ? [] : [invalid(at, value)];
  if ('oneOf' in field) {
    // The parser of enumerations takes either case.
    return typeof value === 'string' && field.oneOf.includes(value.toUpperCase()) ? [] : [invalid(at, value)];
  }
  if (!Array.isArray(value)) return [invalid(at, value)];
  return value.flatMap((member: unknown, index) =>
    IS[field.listOf](member) ? [] : [invalid(`${at}[${index}]`, member)],
  );
}

const IS: Readonly<Record<Scalar, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  int32: (value) => Number.isInteger(value) && Math.abs(Number(value)) < 2 ** 31,
  float: (value) => typeof value === 'number',
  duration: (value) => typeof value === 'string' && /^\d{1,12}(?:\.\d{1,9})?s$/.test(value),
  datetime: (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  struct: isObject,
};

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(at: string, value: unknown): FieldViolation {
  return { field: at, description: `Invalid value at '${at}', ${JSON.stringify(value)}` };
}

function unknownName(name: string, path: string): string {
  const at = path === '' ? '' : ` at '${path}'`;
  return `Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`;
}
