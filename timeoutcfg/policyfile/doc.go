// Package policyfile reads a client's timeout policy from a file with a gRPC
// service config, and follows the file while the program runs.
//
//	timeouts := interceptor.New(nil)
//	done, err := policyfile.Watch(ctx, "policy.json", timeouts.SetPolicy)
//
// A change takes effect with the calls that begin after it; calls in flight keep
// their limits. What gRPC itself reads of a service config, such as the load
// balancing, is fixed when a connection is made, and does not change with the file.
//
// [Watch] is made for files that are edited in place, replaced by renaming, or
// mounted from a Kubernetes ConfigMap, whose files are symbolic links that lead
// through another link, ..data, which is replaced. It watches every directory that
// the path leads through, links and all, so that it does not matter which of them
// is replaced. (On systems other than Linux, where watching a directory opens
// every file in it, it watches those with the links and the file alone.) It sees
// what the kernel tells of: on a network file system, not what another machine
// does.
//
// It is a package of its own so that nobody else depends on what watches files.
package policyfile
