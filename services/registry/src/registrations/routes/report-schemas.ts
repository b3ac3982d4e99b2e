import { documented, memberRules } from '@rollcall/platform/http/documented.ts';
import { Type } from 'typebox';
import { detailNameRules, versionRules, wordRules } from '../../common/validation.ts';
import { named, ServiceName } from '../../http/schemas.ts';
import { InstanceId } from './registration-schemas.ts';

const At = Type.Optional(
  Type.String({
    description: 'RFC 3339, without leap seconds; now when absent',
    ...documented({ format: 'date-time' }),
  }),
);
const Details = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), {
    description:
      'Free; `version` becomes the version that runs. At most 16 KiB of JSON; no text in it, of whatever depth, has control characters',
    ...documented({
      properties: {
        version: {
          anyOf: [{ type: 'string', ...versionRules }, { allOf: [{ not: { type: 'string' } }, named('Printable')] }],
        },
      },
      propertyNames: { ...detailNameRules, ...memberRules },
      additionalProperties: named('Printable'),
    }),
  }),
);
const Word = Type.String({ description: '1 to 64 characters, none of control', ...documented(wordRules) });

const instance = { service_name: ServiceName, instance_id: Type.Optional(InstanceId) };

/** Contract 1, `/webhooks/health`. */
export const HealthBody = Type.Object({ ...instance, status: Word, timestamp: At, details: Details });

/** Contract 1, `/webhooks/lifecycle`. */
export const LifecycleBody = Type.Object({ ...instance, event: Word, timestamp: At, details: Details });

export const ReceivedResponse = Type.Object({ status: Type.Literal('received'), message: Type.String() });
