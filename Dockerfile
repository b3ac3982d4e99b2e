# The image of every process: the container's arguments are `registry`, `operator`, `cli ...` and so on.
#
# docker build --tag rollcall --build-arg REVISION=$(git rev-parse HEAD) .
#
# The same sources and bases give the same layers, byte for byte, where the builder sets all times
# to that of the sources:
#
# SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) docker buildx build --output
# type=image,name=rollcall,rewrite-timestamp=true .
# buildah build --timestamp $(git log -1 --format=%ct) --tag rollcall .

# Any image with this release of Node, its npm and a shell. Nothing else of it gets into the image.
ARG NODE_IMAGE=docker.io/library/node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY . .
ARG SOURCE_DATE_EPOCH=
# The lock file is for developers' packages too, of which npm would miss those for other platforms.
# Nobody but root may write anything; declarations and source maps are half of the packages, and
# nothing reads them. The packages get a layer of their own, which stays the same from version to
# version. JavaScript is emitted once, here: Node's stripper of types would cost each process 25 MiB
# and a third of its start.
RUN --mount=type=cache,target=/tmp/npm \
    export npm_config_cache=/tmp/npm \
    && npm pkg delete devDependencies \
    && npm ci --omit=dev --workspace=@rollcall/image \
    && node tools/sbom.ts > sbom.cdx.json \
    && node tools/emit-javascript.ts cli clients crds fetcher image operator platform services \
    && rm -r package-lock.json .npmrc tools \
    && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.[cm]ts' \) -exec rm {} + \
    && chmod -R u=rwX,go=rX . \
    && mkdir /packages && mv node_modules /packages/
# Node and the libraries that it is linked with: neither shell nor npm. Kubernetes reads the number
# of the user alone from an image: without an entry its group would be root.
RUN mkdir -p /runtime/etc \
    && libraries=$(node -p 'process.report.getReport().sharedObjects.filter((file) => file.startsWith("/")).join(" ")') \
    && for file in "$(command -v node)" $libraries; do \
         mkdir -p "/runtime$(dirname "$file")" && cp -L "$file" "/runtime$file" || exit 1; \
       done \
    && echo rollcall:x:65532:65532::/nonexistent:/usr/sbin/nologin > /runtime/etc/passwd \
    && echo rollcall:x:65532: > /runtime/etc/group

FROM scratch
COPY --from=build /runtime /
COPY --from=build /packages /app
COPY --from=build /app /app
WORKDIR /app
ENV NODE_ENV=production PATH=/usr/local/bin
# Half of them may look names up; see docs/decisions/0046.
ENV UV_THREADPOOL_SIZE=16
# docs/decisions/0263 and 0272 have the reasons, and 0455 why two processes have others.
ENV NODE_OPTIONS="--max-semi-space-size=8 --max-old-space-size=1536"
# Numeric, or Kubernetes could not tell that it is not root.
USER 65532:65532
ENTRYPOINT ["node", "/app/image/src/main.js"]
ARG VERSION=0.1.0
ARG REVISION=
ARG NODE_IMAGE
LABEL org.opencontainers.image.title="Rollcall" \
      org.opencontainers.image.description="Service registry, delivery operator and API front door for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}"
