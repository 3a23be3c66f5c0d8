// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/rank_error.h"

#include <fmt/format.h>
#include <string>

#include "base/error.h"
#include "kernels/core/communicator.h"

namespace vitrine::kernels {

std::exception_ptr errorOfRank(const std::exception_ptr& error, int rank, std::string_view place) {
    const std::string before =
        place.empty() ? fmt::format("rank {}: ", rank) : fmt::format("rank {}, {}: ", rank, place);
    try {
        std::rethrow_exception(error);
    } catch (const RankAborted&) {
        return error;
    } catch (const base::Cancelled&) {
        return error;
    } catch (const base::OutOfMemory& full) {
        base::OutOfMemoryDetails details = full.details();
        details.what = before + details.what;
        return std::make_exception_ptr(base::OutOfMemory(std::move(details)));
    } catch (const base::BadInput& bad) {
        return std::make_exception_ptr(base::BadInput(before + bad.message()));
    } catch (const base::Unsupported& bad) {
        return std::make_exception_ptr(base::Unsupported(before + bad.message()));
    } catch (const base::DeviceFault& fault) {
        return std::make_exception_ptr(base::DeviceFault(before + fault.message()));
    } catch (const std::exception& other) {
        return std::make_exception_ptr(base::Internal(before + other.what()));
    }
}

bool isRankAborted(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const RankAborted&) {
        return true;
    } catch (...) {
        return false;
    }
}

} // namespace vitrine::kernels
