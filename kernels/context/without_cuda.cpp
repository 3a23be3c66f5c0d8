// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The CUDA backend of a build without CUDA headers: there is no device, and making a context says why.

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_side_stream.h"
#include "kernels/cuda/cuda_upload.h"
#include "kernels/cuda/jit/nvrtc.h"

namespace vitrine::kernels {

// Nothing below the constructor can be reached: no context comes to exist.
struct CudaContext::State {};
struct CudaGraph::State {};
struct CudaEvent::State {};
struct CudaUpload::State {};
struct CudaSideStream::State {};
class CudaDevice {};

namespace {

[[noreturn]] void refuse() {
    throw base::Unsupported(
        "backend: this program was built without CUDA headers; use --backend cpu or --backend meta, "
        "or build it where cuda.h is found");
}

} // namespace

const Nvrtc* Nvrtc::find() {
    return nullptr;
}

const std::string& Nvrtc::whyMissing() {
    static const std::string kReason = "this program was built without CUDA headers";
    return kReason;
}

CompiledKernel Nvrtc::compile(const CompileJob&) const {
    refuse();
}

std::string whyNoCuda() {
    return Nvrtc::whyMissing();
}

std::vector<CudaDeviceInfo> cudaDevices() {
    return {};
}

CudaGraph::CudaGraph() = default;
CudaGraph::~CudaGraph() = default;
CudaGraph::CudaGraph(CudaGraph&&) noexcept = default;
CudaGraph& CudaGraph::operator=(CudaGraph&&) noexcept = default;
bool CudaGraph::empty() const {
    return true;
}

CudaEvent::CudaEvent() = default;
CudaEvent::~CudaEvent() = default;
CudaEvent::CudaEvent(CudaEvent&&) noexcept = default;
CudaEvent& CudaEvent::operator=(CudaEvent&&) noexcept = default;
void CudaEvent::wait() const {}
bool CudaEvent::done() const {
    return true;
}

double CudaEvent::secondsSince(const CudaEvent&) const {
    return 0;
}

CudaContext::CudaContext(const CudaOptions&) {
    refuse();
}
CudaContext::~CudaContext() = default;
CudaContext::CudaContext(CudaContext&&) noexcept = default;
CudaContext& CudaContext::operator=(CudaContext&&) noexcept = default;

const CudaDeviceInfo& CudaContext::device() const {
    refuse();
}
const DeviceTraits& CudaContext::traits() const {
    refuse();
}
KernelLibrary& CudaContext::library() {
    refuse();
}
void CudaContext::beginRun(std::uint64_t) {}
void CudaContext::launch(const KernelCall&) {
    refuse();
}
bool CudaContext::fits(const KernelCall&) {
    refuse();
}
void CudaContext::setPrefetching(bool) {}
void CudaContext::setExactRows(bool) {
    refuse();
}

void CudaContext::multiply(const DenseProduct&) {
    refuse();
}
void CudaContext::copyToDevice(const void*, void*, std::uint64_t) {
    refuse();
}
void CudaContext::copyToHost(const void*, void*, std::uint64_t) {
    refuse();
}
void CudaContext::copyOnDevice(const void*, void*, std::uint64_t) {
    refuse();
}
void CudaContext::fill(void*, std::uint8_t, std::uint64_t) {
    refuse();
}
void CudaContext::synchronize() {
    refuse();
}
CudaEvent CudaContext::record() {
    refuse();
}
void CudaContext::throwIfFaulted() const {}
void CudaContext::beginCapture() {
    refuse();
}
CudaGraph CudaContext::endCapture() {
    refuse();
}
void CudaContext::abortCapture() noexcept {}
bool CudaContext::capturing() const {
    return false;
}
void CudaContext::replay(const CudaGraph&) {
    refuse();
}
void* CudaContext::stream(int) const {
    return nullptr;
}
void CudaContext::makeCurrent() const {}
std::unique_ptr<MemoryResource> CudaContext::makeResource(base::MemorySpace) {
    refuse();
}
std::uint64_t CudaContext::usedBytes() const {
    return 0;
}

std::shared_ptr<CudaDevice> CudaContext::sharedDevice() const {
    return nullptr;
}

CudaUpload::CudaUpload(CudaContext&, MemoryResource&, int, std::uint64_t) {
    refuse();
}
CudaUpload::~CudaUpload() = default;
std::uint64_t CudaUpload::bufferBytes() const {
    return 0;
}
void* CudaUpload::buffer(int) {
    return nullptr;
}
void CudaUpload::send(int, const void*, void*, std::uint64_t, std::uint64_t) {}
void CudaUpload::beforeCompute() {}
void CudaUpload::afterCompute() {}
std::vector<CudaUpload::Copied> CudaUpload::takeCopied() {
    return {};
}
void CudaUpload::finish() {}

CudaSideStream::CudaSideStream(CudaContext&) {
    refuse();
}
CudaSideStream::~CudaSideStream() = default;
void CudaSideStream::copyToHost(const void*, void*, std::uint64_t) {}
void CudaSideStream::copyToDevice(const void*, void*, std::uint64_t) {}
CudaEvent CudaSideStream::record() {
    return {};
}
void CudaSideStream::waitFor(const CudaEvent&) {}
void CudaSideStream::computeWaitsFor(const CudaEvent&) {}

} // namespace vitrine::kernels
