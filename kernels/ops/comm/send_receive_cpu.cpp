// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/send_receive.h"

namespace vitrine::kernels {

void execute(CpuContext& /*context*/, const Send& op) {
    op.communicator->send(Send::kName, op.to, {op.x.as<const std::byte>(), op.x.bytes()});
}

void execute(CpuContext& /*context*/, const Receive& op) {
    op.communicator->receive(Receive::kName, op.from, {op.out.as<std::byte>(), op.out.bytes()});
}

} // namespace vitrine::kernels
