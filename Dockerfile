# The controller as an image of its own static program, the certificates that
# AWS is checked against, and nothing else: no shell, no root.
#
#   make image IMAGE=registry.example.com/karpenter/controller:0.1.0
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd/karpenter cmd/karpenter
COPY internal internal
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
	go build -trimpath -buildvcs=false -ldflags "-s -w -X karpenter/internal/app.Version=$VERSION" -o /karpenter ./cmd/karpenter

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /karpenter /karpenter
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/karpenter"]
