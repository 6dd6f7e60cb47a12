// What Python calls a module: one of the language builder, in a context that compilations share.
#ifndef TRITON_METAL_LENT_MODULE_H
#define TRITON_METAL_LENT_MODULE_H

#include "language/Builder.h"
#include "pipeline/Contexts.h"

namespace triton_metal {

/// The context is lent to it for as long as it lives.
class LentModule : public language::Module {
public:
  LentModule() : LentModule(std::make_shared<ContextLease>()) {}
  PassManagers &getManagers() { return lease->getManagers(); }

private:
  explicit LentModule(const std::shared_ptr<ContextLease> &lease)
      : Module(std::shared_ptr<mlir::MLIRContext>(lease, lease->getContext())), lease(lease) {}

  std::shared_ptr<ContextLease> lease;
};

} // namespace triton_metal

#endif // TRITON_METAL_LENT_MODULE_H
