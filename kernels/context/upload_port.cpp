// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/upload_port.h"

#include "base/error.h"
#include "kernels/cuda/cuda_upload.h"
#include "kernels/memory/memory.h"

namespace vitrine::kernels {
namespace {

class CudaPort final : public UploadPort {
public:
    CudaPort(CudaContext& gpu, MemoryResource& pinned, int workers, std::uint64_t bufferBytes)
        : workers_(workers), upload_(gpu, pinned, workers, bufferBytes) {}

    int workers() const override { return workers_; }
    std::uint64_t bufferBytes() const override { return upload_.bufferBytes(); }
    void* buffer(int worker) override { return upload_.buffer(worker); }
    void send(int worker, const void* from, void* device, std::uint64_t bytes, std::uint64_t tag) override {
        upload_.send(worker, from, device, bytes, tag);
    }
    void beforeCompute() override { upload_.beforeCompute(); }
    void afterCompute() override { upload_.afterCompute(); }
    std::vector<Copied> takeCopied() override {
        std::vector<Copied> out;
        for (const CudaUpload::Copied& copy : upload_.takeCopied()) {
            out.push_back({copy.tag, copy.begin, copy.end});
        }
        return out;
    }
    void finish() override { upload_.finish(); }

private:
    int workers_;
    CudaUpload upload_;
};

} // namespace

std::unique_ptr<UploadPort> makeUploadPort(Context& context, int workers, std::uint64_t bufferBytes) {
    CudaContext* const gpu = context.cuda();
    if (gpu == nullptr) {
        throw base::Internal("an upload port of a context whose memory is the host's");
    }
    return std::make_unique<CudaPort>(*gpu, context.memory().host(), workers, bufferBytes);
}

} // namespace vitrine::kernels
